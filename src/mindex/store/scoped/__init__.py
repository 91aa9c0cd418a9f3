"""A store as one principal may see and change it: every call to the store of a request goes through here."""
