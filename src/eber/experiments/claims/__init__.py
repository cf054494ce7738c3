"""The paper, claim by claim: what it says, what came out here, and whether it holds."""
