"""Mapping files for published job tables, one TOML file each; see `premortem.sources.mapping`."""
