"""Exports models as files for ONNX Runtime and LiteRT; open ids_graph first."""
