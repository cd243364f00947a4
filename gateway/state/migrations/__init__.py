"""The steps from an empty database to the tables of `gateway.state.schema`."""
