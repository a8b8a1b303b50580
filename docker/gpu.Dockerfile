# The programs on NVIDIA GPUs: the machine needs their driver and the NVIDIA container toolkit. In a
# clone of the repository:
#
#   docker build -f docker/gpu.Dockerfile -t korean-bert-gpu .
#   docker run --rm --gpus=all --shm-size=1g --ulimit memlock=-1 \
#     -v "$PWD:/work" --user "$(id -u):$(id -g)" korean-bert-gpu \
#     korean-bert-check-devices --report=report.json
#
# NCCL shares memory between the GPUs in /dev/shm, of which Docker gives 64 MB unless asked. Several
# machines: add --network=host -e TF_CONFIG.
#
# CUDA comes from the package index, as everything but the base image does. No image has been built
# on the project's own machines, which run no containers.
FROM python:3.11-slim

# The versions first: a change of the code alone does not install them again.
COPY requirements/gpu.txt /opt/requirements.txt
RUN pip install --no-cache-dir -r /opt/requirements.txt

COPY . /opt/korean-bert-albert
RUN pip install --no-cache-dir --no-deps --no-build-isolation /opt/korean-bert-albert

# Whoever runs it may have no name in the image, and so no home.
ENV HOME=/tmp
WORKDIR /work
CMD ["bash"]
