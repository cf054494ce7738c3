"""Tables larger than memory: looked at, learned from, scattered, gathered; then a folder that fits are made from.

`looking` draws a sample and counts classes and environments, `learning` takes the statistics that columns are
standardised by, `scattering` writes rows as the networks see them into random buckets, `gathering` shuffles each bucket
and lays one behind the other. `folder` is what comes of it, and `preparing` the whole.
"""
