"""The storages that tests of stores run on."""

from support.worlds.stores import s3, where

__all__ = ["s3", "where"]
