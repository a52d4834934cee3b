"""The rules of the doctor, one file for each part. They are pure: facts in, findings out."""
