"""The library to use servers with: the Client, how it answers questions, watches and keeps."""
