"""Models as files of ONNX Runtime and LiteRT; open ids_graph first."""
