"""The scenarios that come with nemesis: one YAML file each, read by ``nemesis.scenario``. Users bring their own."""
