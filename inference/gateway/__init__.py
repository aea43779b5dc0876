"""An OpenAI-compatible server over one engine, for editors, note apps and scripts on this machine."""
