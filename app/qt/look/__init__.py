"""How the windows look: theme, icons, small widgets and layouts that know nothing of the app."""
