"""What running jobs use at this moment: samplers that look, and a recorder that keeps.

`NodeSampler` reads /proc of the machine it runs on. Frames are of `SAMPLE_SCHEMA`. Nothing here
knows of stores.
"""

from __future__ import annotations

from premortem.sources.usage.node import NodeSampler
from premortem.sources.usage.port import Sampler, SampleSink

__all__ = ["NodeSampler", "SampleSink", "Sampler"]
