# The programs on CPUs. In a clone of the repository:
#
#   docker build -f docker/cpu.Dockerfile -t korean-bert .
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" korean-bert \
#     korean-bert-fill-masks --text='나는 학교[MASK] 갔다.'
#
# Everything but the base image comes from the package index. No image has been built on the
# project's own machines, which run no containers; the lines after RUN were run there in a new
# environment.
FROM python:3.11-slim

# The versions first: a change of the code alone does not install them again.
COPY requirements/cpu.txt /opt/requirements.txt
RUN pip install --no-cache-dir -r /opt/requirements.txt

COPY . /opt/korean-bert-albert
RUN pip install --no-cache-dir --no-deps --no-build-isolation /opt/korean-bert-albert

# Whoever runs it may have no name in the image, and so no home.
ENV HOME=/tmp
WORKDIR /work
CMD ["bash"]
