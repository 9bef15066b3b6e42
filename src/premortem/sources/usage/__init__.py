"""What running jobs use at this moment: samplers that look, and a recorder that hands on.

`NodeSampler` reads /proc of the machine it runs on; `SstatSampler` asks Slurm. Frames are of
`SAMPLE_SCHEMA`. Nothing here knows of stores: a `Recorder` hands samples to what can `add` them.
"""

from __future__ import annotations

from premortem.sources.usage.node import NodeSampler
from premortem.sources.usage.port import Sampler, SampleSink
from premortem.sources.usage.recorder import Recorder
from premortem.sources.usage.sstat import Answer, SstatSampler
from premortem.sources.usage.thinning import Thinning

__all__ = ["Answer", "NodeSampler", "Recorder", "SampleSink", "Sampler", "SstatSampler", "Thinning"]
