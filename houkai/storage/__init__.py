"""The one file: connections, writes, migrations, rows, journal and indexes."""
