"""Exports models as files for ONNX Runtime and LiteRT; start with ids_graph."""
