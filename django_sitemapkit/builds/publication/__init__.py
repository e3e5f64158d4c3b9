"""From finished files to what a site serves: gates, publication, export, notification, pruning."""
