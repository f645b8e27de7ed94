"""The API and the pages, over HTTP: the one part of the service that knows FastAPI."""
