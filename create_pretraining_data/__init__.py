"""Turns text files into the records that BERT or ALBERT is pre-trained on."""
