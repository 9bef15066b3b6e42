"""What learns from rows of features and gives risks: one file a library, behind `port.Classifier`.

Nothing here knows jobs, logs or time; a model sees numbers and outcomes, and what it may see is
decided by whoever trains it.
"""
