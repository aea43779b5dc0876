"""The gateway of inference.gateway, as this app's settings want it."""
