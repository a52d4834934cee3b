"""The client library: the Client, answers to questions, subscriptions, the response cache."""
