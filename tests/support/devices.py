"""Machines as `describe_machine` describes them."""

CPU_MACHINE = {
    "python": "3.11.9",
    "tensorflow": "2.21.0",
    "keras": "3.15.0",
    "built_for": None,
    "cpu": "Some CPU",
    "threads": 2,
    "bfloat16_instructions": [],
    "gpus": [],
    "nvidia_smi": {"gpus": None, "links": None, "cuda_of_driver": None, "topology": None,
                   "reason": "nvidia-smi is not installed, or not in PATH"},
    "libraries": {"libcuda.so.1": {"loaded": False, "version": None}},
}  # fmt: skip
GPU_MACHINE = {
    **CPU_MACHINE,
    "built_for": {"cuda_version": "12.5.1", "cudnn_version": "9"},
    "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}] * 4,
    "nvidia_smi": {
        "gpus": [{"driver": "535.129.03", "memory_mib": "81920"}] * 4,
        "links": {"GPU0-GPU1": "NV12"}, "cuda_of_driver": "12.2", "topology": "", "reason": None,
    },
    "libraries": {"libnccl.so.2": {"loaded": False, "version": None}},
}  # fmt: skip
