"""Programs that turn a model into another form; open export_model first."""
