"""What every HTTP door stands on: an address to listen on, the server, and keeping other web sites out."""
