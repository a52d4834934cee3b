"""The commands of the programs for people: chat, ask, host, log, config and demo."""
