"""What differs between operating systems: hotkey grabs, sent keys, the foreground window. No Qt here."""
