"""An engine on another machine: any OpenAI-compatible server, where the user has chosen one."""
