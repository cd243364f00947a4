"""The admin API: what operators, the command line and deployments ask of a running gateway."""
