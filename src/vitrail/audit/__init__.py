"""The adversary: what do releases leak? ``mechanism`` measures a privacy claim against draws on two neighbours."""

from .instrument import mechanism
from .result import Audit

__all__ = ["Audit", "mechanism"]
