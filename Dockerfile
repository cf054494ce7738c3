# The eber command with the CPU build of torch and the versions that were tested.
#   docker build -t eber .
#   docker run --rm --user "$(id -u)" -v "$PWD:/data" eber compare hospitals.csv --label sepsis --environment hospital --quick
FROM python:3.11-slim

# The default build of torch brings gigabytes of CUDA packages that nothing here uses.
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

WORKDIR /opt/eber
COPY constraints.txt ./
RUN python -m pip install --constraint constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m pip install --constraint constraints.txt .

# Nobody in particular, who may be given another number by `docker run --user`; matplotlib wants a home to write to.
ENV HOME=/tmp OMP_NUM_THREADS=1
USER 1000
WORKDIR /data
ENTRYPOINT ["eber"]
CMD ["--help"]
