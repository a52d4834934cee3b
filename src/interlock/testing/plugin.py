"""The pytest plugin: loaded in every run of pytest where Interlock is installed, so it stays light."""
