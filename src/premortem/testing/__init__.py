"""Made-up jobs for tests, scale benchmarks and the demo; never evidence of quality.

`synthetic` invents a cluster whose jobs fail for reasons that can partly be learned, `writers`
prints them as Slurm's and the archive's tools would, and `python -m premortem.testing` does both.
How well a model does on these jobs says how well it found what was put there, and nothing about
any real site. Nothing outside tests, benchmarks and the demo may import from here.
"""
