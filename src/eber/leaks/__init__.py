"""Does the held-out environment share rows with training?"""
