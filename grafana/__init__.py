"""Dashboards for Grafana: their source in Python, the JSON made of it, and its provisioning."""
