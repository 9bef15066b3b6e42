"""Kinds of job of biologists: pipelines over many files, in Perl, awk and C."""

from __future__ import annotations

from premortem.lab.workload.kinds import Kind, Language

KINDS = (
    Kind(
        "read_align",
        "Reads of a sample, aligned",
        "genome",
        ("align_{n:03}", "bwa_s{n}"),
        "align",
        """\
source /home/apps/profile.sh
module load @module@

SAMPLE=sample@number@
REF=/home/apps/data/genome.fa
[ -r $REF ] || exit 4
@program@ --input @input@ --size @size@ --threads @cpus@ --output $SAMPLE.sam
""",
        seconds=(8, 30),
        memory_mb=(40, 200),
        sizes=(50_000, 2_000_000),
        io_mb_s=0.5,
        cpus=(2, 4),
    ),
    Kind(
        "assemble",
        "Assembly of a genome",
        "genome",
        ("asm_{n:02}", "assembly{n}"),
        "assemble",
        """\
source /home/apps/profile.sh
module load @module@

for k in 21 33 55; do
    echo "k = $k"
done
@program@ --input @input@ --size @size@ --threads @cpus@
""",
        seconds=(15, 50),
        memory_mb=(60, 260),
        sizes=(1_000_000, 40_000_000),
        cpu=0.04,
        cpus=(2, 4),
        fragility=1.3,
    ),
    Kind(
        "variant_call",
        "Variants of a sample",
        "genome",
        ("call_{n:03}", "vc_sample{n}"),
        "variants",
        """\
source /home/apps/profile.sh
module load @module@
SAMPLE=sample@number@
echo "calling $SAMPLE"
@program@ --input @input@ --size @size@ | tail -n 3 > $SAMPLE.log
sort -r $SAMPLE.log | head -n 1 > $SAMPLE.last
""",
        seconds=(5, 22),
        memory_mb=(20, 140),
        sizes=(10_000, 900_000),
    ),
    Kind(
        "fasta_filter",
        "Sequences filtered by length",
        "metagenome",
        ("filter_{n:03}", "fa_filter{n}"),
        "filter_fasta.pl",
        """\
source /home/apps/profile.sh
module load @module@

perl @program@ --input @input@ --size @size@
""",
        Language.PERL,
        seconds=(2, 12),
        memory_mb=(10, 50),
        sizes=(200, 9_000),
    ),
    Kind(
        "blast_parse",
        "Hits of a search, parsed",
        "metagenome",
        ("parse_{n:03}", "hits{n}"),
        "parse_hits.pl",
        """\
source /home/apps/profile.sh
module load @module@
mkdir -p hits

perl @program@ --input @input@ --size @size@ > hits/@name@.tsv
cut -d ' ' -f 2 hits/@name@.tsv | sort -n | uniq -c | sort -rn | sed -n 1p
""",
        Language.PERL,
        seconds=(3, 18),
        memory_mb=(15, 90),
        sizes=(1_000, 80_000),
        fragility=1.1,
    ),
    Kind(
        "phylogeny",
        "A tree of species",
        "phylo",
        ("tree_{n:03}", "raxml_{n}"),
        "phylo",
        """\
source /home/apps/profile.sh
module load @module@
BOOT=$((100 + @number@ % 5 * 100))

echo "$BOOT bootstraps"
srun --ntasks=1 @program@ --input @input@ --size @size@ --seed @number@
echo "tree is ready" > @name@.tree
""",
        seconds=(12, 40),
        memory_mb=(15, 70),
        sizes=(20, 600),
        cpu=0.05,
        cpus=(2, 4),
    ),
    Kind(
        "count_table",
        "Counts of genes, by awk",
        "expression",
        ("counts_{n:03}", "htcount{n}"),
        "genecount",
        """\
source /home/apps/profile.sh
module load @module@

awk 'BEGIN { srand(@number@); for (i = 0; i < 3000; i++) print int(rand() * 50) }' > @name@.raw
sort -n @name@.raw | uniq -c | awk '$1 > 3 { kept++ } END { print kept, "genes" }'
@program@ --input @input@ --size @size@
rm -f @name@.raw
""",
        Language.AWK,
        seconds=(2, 10),
        memory_mb=(6, 35),
        sizes=(5_000, 60_000),
    ),
    Kind(
        "sample_array",
        "All samples of a flow cell",
        "expression",
        ("quant_{n:02}", "salmon{n}"),
        "quant",
        """\
source /home/apps/profile.sh
module load @module@

echo "sample ${SLURM_ARRAY_TASK_ID} of ${SLURM_ARRAY_TASK_COUNT}"
@program@ --input @input@ --size @size@ --threads @cpus@
""",
        seconds=(5, 18),
        memory_mb=(20, 110),
        sizes=(100_000, 3_000_000),
        tasks=(3, 10),
    ),
    Kind(
        "image_segment",
        "Cells in microscope images",
        "microscopy",
        ("seg_{n:03}", "cells_plate{n}"),
        "segment.py",
        """\
source /home/apps/profile.sh
module load @module@

for channel in dapi gfp; do
    echo "channel $channel"
done
python3 @program@ --input @input@ --size @size@
""",
        Language.PYTHON,
        seconds=(5, 22),
        memory_mb=(30, 190),
        sizes=(512, 4096),
        fragility=1.1,
    ),
    Kind(
        "protein_fold",
        "Folding of a protein",
        "folding",
        ("fold_{n:03}", "af_{n}"),
        "fold",
        """\
source /home/apps/profile.sh
module load @module@

echo "devices: ${CUDA_VISIBLE_DEVICES:-none}"
@program@ --input @input@ --size @size@
""",
        seconds=(4, 12),
        memory_mb=(30, 140),
        sizes=(80, 1_200),
        partition="gpu",
        options=("--gres=gpu:1",),
        cpus=(1, 2),
    ),
)
