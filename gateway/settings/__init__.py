"""The settings: one tree, read once, refused as a whole with every fault listed."""

from gateway.settings.loading import load
from gateway.settings.tree import (
    AdminSettings,
    AdmissionSettings,
    ArmSettings,
    BackendSettings,
    EngineSettings,
    ExperimentSettings,
    KeySettings,
    MetricsSettings,
    Model,
    RolloutSettings,
    ServerSettings,
    Settings,
    Timeouts,
    TraceSettings,
)

__all__ = [
    "AdminSettings",
    "AdmissionSettings",
    "ArmSettings",
    "BackendSettings",
    "EngineSettings",
    "ExperimentSettings",
    "KeySettings",
    "MetricsSettings",
    "Model",
    "RolloutSettings",
    "ServerSettings",
    "Settings",
    "Timeouts",
    "TraceSettings",
    "load",
]
