"""Kinds of job of people who train models and analyse data, mostly in Python."""

from __future__ import annotations

from premortem.lab.workload.kinds import Kind, Language

_INLINE = """\
source /home/apps/profile.sh
module load @module@

python3 - --input @input@ --size @size@ <<'END'
import labwork

labwork.main()
END
"""

KINDS = (
    Kind(
        "train_resnet",
        "Training of an image model",
        "vision",
        ("train_resnet", "resnet_lr{n}"),
        "train.py",
        """\
source /home/apps/profile.sh
module load @module@
export EPOCHS=10

echo "GPU ${CUDA_VISIBLE_DEVICES:-none}"
python3 @program@ --input @input@ --size @size@ --epochs $EPOCHS
""",
        Language.PYTHON,
        seconds=(4, 14),
        memory_mb=(40, 180),
        sizes=(16, 512),
        partition="gpu",
        options=("--gres=gpu:1",),
        fragility=1.3,
    ),
    Kind(
        "finetune",
        "Fine-tuning of a language model",
        "language",
        ("finetune_{n:02}", "lora-r{n}"),
        "finetune.py",
        """\
source /home/apps/profile.sh
module load @module@
CHECKPOINTS=checkpoints/@name@

mkdir -p $CHECKPOINTS
python3 @program@ --input @input@ --size @size@
touch $CHECKPOINTS/last
""",
        Language.PYTHON,
        seconds=(5, 16),
        memory_mb=(50, 240),
        sizes=(1, 64),
        partition="gpu",
        options=("--gres=gpu:tesla:1",),
        fragility=1.4,
    ),
    Kind(
        "gradient_boost",
        "Boosted trees on a table",
        "tabular",
        ("xgb_{n:03}", "gbm_fold{n}"),
        "boost.py",
        """\
source /home/apps/profile.sh
module load @module@

python3 @program@ --input @input@ --size @size@ --threads ${SLURM_CPUS_PER_TASK:-1}
""",
        Language.PYTHON,
        seconds=(4, 20),
        memory_mb=(25, 150),
        sizes=(10_000, 1_000_000),
        cpu=0.05,
        cpus=(2, 4),
    ),
    Kind(
        "hyper_sweep",
        "A sweep over parameters",
        "tabular",
        ("sweep_{n:02}", "hpo{n}"),
        "trial.py",
        """\
source /home/apps/profile.sh
module load @module@
LR=$(awk -v t=$SLURM_ARRAY_TASK_ID 'BEGIN { print 0.3 / t }')

echo "learning rate $LR"
python3 @program@ --input @input@ --size @size@ --seed $SLURM_ARRAY_TASK_ID
""",
        Language.PYTHON,
        seconds=(4, 16),
        memory_mb=(20, 90),
        sizes=(1_000, 100_000),
        tasks=(4, 12),
        fragility=1.2,
    ),
    Kind(
        "notebook_run",
        "A notebook without its window",
        "notebooks",
        ("nb_{n:02}", "notebook{n}"),
        "notebook",
        _INLINE,
        Language.PYTHON,
        seconds=(1.5, 15),
        memory_mb=(15, 140),
        sizes=(1, 40),
        partition="short",
        fragility=1.5,
    ),
    Kind(
        "bootstrap_ci",
        "Confidence by bootstrap",
        "survey",
        ("boot_{n:03}", "ci_{n}"),
        "bootstrap",
        _INLINE,
        Language.PYTHON,
        seconds=(3, 18),
        memory_mb=(15, 70),
        sizes=(100, 10_000),
        cpu=0.04,
    ),
    Kind(
        "stats_table",
        "Tables of a survey",
        "survey",
        ("tab_{n:03}", "survey_w{n}"),
        "tables",
        """\
source /home/apps/profile.sh
module load @module@

awk 'BEGIN { srand(@number@); for (i = 0; i < 2000; i++) print rand(), int(rand() * 6) }' > @name@.csv
awk '{ n[$2]++; s[$2] += $1 } END { for (k in n) print k, n[k], s[k] / n[k] }' @name@.csv | sort
@program@ --input @input@ --size @size@
rm -f @name@.csv
""",
        Language.AWK,
        seconds=(1, 8),
        memory_mb=(5, 30),
        sizes=(1_000, 20_000),
    ),
    Kind(
        "feature_build",
        "Features from events",
        "tabular",
        ("features_{n:02}", "feat_d{n}"),
        "features.py",
        """\
source /home/apps/profile.sh
module load @module@
DAY=$((@number@ % 28 + 1))

mkdir -p features/$DAY
python3 @program@ --input @input@ --size @size@ --output features/$DAY
""",
        Language.PYTHON,
        seconds=(5, 25),
        memory_mb=(40, 220),
        sizes=(100_000, 5_000_000),
        fragility=1.1,
    ),
    Kind(
        "evaluate_model",
        "Evaluation of a model, step by step",
        "vision",
        ("eval_{n:03}", "evaluate-{n}"),
        "evaluate.py",
        """\
source /home/apps/profile.sh
module load @module@

srun --ntasks=1 --job-name=check test -r @input@
srun --ntasks=1 --job-name=evaluate python3 @program@ --input @input@ --size @size@
""",
        Language.PYTHON,
        seconds=(6, 20),
        memory_mb=(30, 120),
        sizes=(100, 5_000),
        cpus=(1, 2),
    ),
)
