"""What a job is: its fields, states, labels and spellings. Pure: nothing here reads or writes."""
