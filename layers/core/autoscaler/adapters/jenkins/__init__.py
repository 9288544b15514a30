"""Jenkins over its REST API, on python-jenkins' session."""
