"""Extensions that come with the server: skills and apps."""
