"""Tool names and shapes of other memory servers, one file each."""
