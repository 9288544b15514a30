"""The world's faces: Jenkins' REST API and EC2's query API, in memory and over HTTP."""
