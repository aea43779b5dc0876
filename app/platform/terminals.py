"""Which programs are terminals, as data: Ctrl+C would interrupt what runs there, so no copy keystroke is ever sent."""

from __future__ import annotations

# WM_CLASS (instance or class), lower case. X11 and XWayland.
X11_TERMINALS = frozenset(
    {
        "alacritty",
        "aterm",
        "com.mitchellh.ghostty",
        "com.raggesilver.blackbox",
        "com.system76.cosmicterm",
        "contour",
        "cool-retro-term",
        "deepin-terminal",
        "dev.warp.warp",
        "eterm",
        "foot",
        "ghostty",
        "gnome-terminal",
        "gnome-terminal-server",
        "guake",
        "hyper",
        "io.elementary.terminal",
        "kgx",
        "kitty",
        "konsole",
        "koi8rxterm",
        "kterm",
        "lilyterm",
        "lxterm",
        "lxterminal",
        "mate-terminal",
        "mlterm",
        "org.gnome.console",
        "org.gnome.ptyxis",
        "org.gnome.terminal",
        "org.kde.konsole",
        "org.kde.yakuake",
        "org.wezfurlong.wezterm",
        "ptyxis",
        "qterminal",
        "rio",
        "roxterm",
        "rxvt",
        "sakura",
        "st",
        "st-256color",
        "tabby",
        "terminator",
        "terminology",
        "termite",
        "tilda",
        "tilix",
        "urxvt",
        "uxterm",
        "wezterm",
        "wezterm-gui",
        "x-terminal-emulator",
        "xfce4-terminal",
        "xterm",
        "yakuake",
        "zutty",
    }
)

# Terminals in which Ctrl+Shift+V is not "paste": it would reach the program that runs there as Ctrl+V.
X11_TERMINALS_WITHOUT_PASTE_KEY = frozenset(
    {"aterm", "eterm", "koi8rxterm", "kterm", "lxterm", "mlterm", "rxvt", "urxvt", "uxterm", "xterm", "zutty"}
)

# Window classes on Windows, lower case.
WINDOWS_TERMINAL_CLASSES = frozenset(
    {
        "cascadia_hosting_window_class",  # Windows Terminal
        "consolewindowclass",  # conhost: cmd, PowerShell, WSL, Python
        "console_2_main",  # Console2, ConsoleZ
        "kitty",  # the PuTTY fork of that name
        "mintty",  # Git Bash, Cygwin, MSYS2
        "org.wezfurlong.wezterm",
        "pseudoconsolewindow",
        "putty",
        "virtualconsoleclass",  # ConEmu, Cmder
        "vtwin32",  # Tera Term
    }
)

# Programs on Windows whose window class says nothing, lower case.
WINDOWS_TERMINAL_PROGRAMS = frozenset(
    {"alacritty.exe", "hyper.exe", "rio.exe", "tabby.exe", "warp.exe", "wezterm-gui.exe", "windowsterminal.exe"}
)
