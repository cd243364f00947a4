"""The dashboards as code; `python -m grafana.source` writes them as JSON."""
