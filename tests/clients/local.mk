# tests/clients: programs that nobody here wrote, unmodified; skipped where PyPI cannot be reached
EXTRA_DIST += tests/clients/requirements/torch.txt tests/clients/torch_books.py tests/clients/torch_compile.py tests/clients/torch_conv.py \
	tests/clients/torch_generate.py tests/clients/torch_graphs.py tests/clients/torch_holder.py tests/clients/torch_ranks.py tests/clients/torch_share.py tests/clients/torch_shared.py \
	tests/clients/torch_faults.py tests/clients/torch_steps.py tests/clients/torch_tensors.py tests/clients/torch_train.py
dist_check_SCRIPTS += tests/clients/judge_test.py tests/clients/small.py
ms_clients_kit = tests/clients/kit/__init__.py tests/clients/kit/checkout.py tests/clients/kit/faults.py tests/clients/kit/fits.py tests/clients/kit/holder.py tests/clients/kit/install.py tests/clients/kit/judge.py \
	tests/clients/kit/page.py tests/clients/kit/play.py tests/clients/kit/pytests.py tests/clients/kit/run.py tests/clients/kit/session.py \
	tests/clients/kit/suite.py tests/clients/kit/table.py tests/clients/kit/units.py
ms_clients_requirements = tests/clients/requirements/cuda-core-tests.txt \
	tests/clients/requirements/cuda-python.txt tests/clients/requirements/torch-tests.sources \
	tests/clients/requirements/torch-tests.txt tests/clients/requirements/faiss.txt tests/clients/requirements/jax.txt \
	tests/clients/requirements/nccl.txt \
	tests/clients/requirements/pools.txt tests/clients/requirements/rmm.txt tests/clients/requirements/small.txt tests/clients/requirements/tensorflow.txt \
	tests/clients/requirements/tvm.txt tests/clients/requirements/various.txt
ms_clients_programs = tests/clients/av_frames.py tests/clients/core_holder.py tests/clients/cuda_bindings.py tests/clients/cuda_core.py \
	tests/clients/cumm_copy.py tests/clients/drjit_arrays.py tests/clients/faiss_indexes.py \
	tests/clients/jax_arrays.py tests/clients/judged.py tests/clients/judged_suite.py tests/clients/nccl_ranks.py \
	tests/clients/cupy_pools.py tests/clients/inner.py tests/clients/rmm_pools.py tests/clients/numba_arrays.py tests/clients/numba_holder.py tests/clients/nvml.py tests/clients/nvtx_ranges.py \
	tests/clients/planted.py tests/clients/rmm_statistics.cc tests/clients/taichi_arrays.py tests/clients/tensorflow_tensors.py \
	tests/clients/tinygrad_tensors.py tests/clients/tvm_tensors.py
EXTRA_DIST += scripts/test-clients tests/clients/clients.conf tests/clients/mark.h tests/clients/mark.py \
	$(ms_clients_kit) $(ms_clients_requirements) $(ms_clients_programs)
