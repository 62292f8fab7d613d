# tests/programs: programs that behave like users' programs and print what a report must say of them. With the toolkit at hand
# they are compiled against the vendor's headers, as a user's would be; linked to the runtime as a shared library either way.
if HAVE_CUDA_TOOLKIT
ms_user_program_CPPFLAGS = $(AM_CPPFLAGS) -DTRAINING_TOOLKIT -I$(CUDA_HOME)/include
else
ms_user_program_CPPFLAGS = $(AM_CPPFLAGS)
endif

check_PROGRAMS += tests/programs/training
tests_programs_training_CPPFLAGS = $(ms_user_program_CPPFLAGS)
tests_programs_training_LDADD = libcudart.so.13

dist_check_SCRIPTS += tests/programs/training.bats

# What tests/traces keeps, as a program.
check_PROGRAMS += tests/programs/shapes
tests_programs_shapes_LDADD = libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/programs/shapes.py
EXTRA_DIST += tests/traces/README.md tests/traces/convnet.trace.xz tests/traces/dataframe.trace.xz tests/traces/decode.trace.xz \
	tests/traces/pipeline.trace.xz tests/traces/training.trace.xz tests/traces/transformer.trace.xz

# What `memshim summary` shows of programs, as the pages have it.
if BUILD_CLI
check_PROGRAMS += tests/programs/ranks
tests_programs_ranks_CFLAGS = $(AM_CFLAGS) -g -O1
tests_programs_ranks_LDADD = libnccl.so.2 libcudart.so.13 libcuda.so.1
dist_check_SCRIPTS += tests/programs/screens.py
EXTRA_DIST += tests/programs/torch_evaluate.py tests/programs/torch_step.py

# The listings of docs/user/questions/.
check_PROGRAMS += tests/programs/service
tests_programs_service_CFLAGS = $(AM_CFLAGS) -g -O1
tests_programs_service_LDADD = libcudart.so.13
dist_check_SCRIPTS += tests/programs/questions.py
endif
