"""What the app needs of an operating system's desktop; app/platform holds the systems."""
