"""Fuzzing: any bytes give a value or RemoteProtocolError, from decoders and whole machines."""
