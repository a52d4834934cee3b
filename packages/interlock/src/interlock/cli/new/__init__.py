"""`interlock new`: the command, and the texts of the files that it writes."""
