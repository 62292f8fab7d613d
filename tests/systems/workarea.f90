! An autotuner as Fortran libraries for distributed transposes have it: for each candidate it takes work areas from NCCL through the C
! symbol, bytes by value and a type(c_ptr) out, runs, checks, and frees them; then it goes round once more to measure. What
! it is given may be larger than what it asked for. Prints what it found; knows nothing of who answers.
module vendor
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: host_to_device = 1, device_to_host = 2, device_to_device = 3

    interface
        integer(c_int) function ncclmemalloc(ptr, bytes) bind(C, name="ncclMemAlloc")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), intent(out) :: ptr
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function ncclmemfree(ptr) bind(C, name="ncclMemFree")
            import :: c_int, c_ptr
            type(c_ptr), value :: ptr
        end function
        integer(c_int) function cudamemcpy(to, from, bytes, kind) bind(C, name="cudaMemcpy")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: to, from
            integer(c_size_t), value :: bytes
            integer(c_int), value :: kind
        end function
        integer(c_int) function cudamemcpy2d(to, to_pitch, from, from_pitch, width, height, kind) bind(C, name="cudaMemcpy2D")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: to, from
            integer(c_size_t), value :: to_pitch, from_pitch, width, height
            integer(c_int), value :: kind
        end function
        integer(c_int) function cudadevicesynchronize() bind(C, name="cudaDeviceSynchronize")
            import :: c_int
        end function
        subroutine say_made(what) bind(C, name="say_made")
            import :: c_char
            character(kind=c_char), intent(in) :: what(*)
        end subroutine
    end interface

    ! As the generic allocation of such a library: the kind of the pointer says how many bytes an element has.
    interface work_alloc
        module procedure work_alloc_r4, work_alloc_r8
    end interface
contains
    subroutine work_alloc_r4(area, elements, status)
        real(c_float), pointer, contiguous, intent(out) :: area(:)
        integer(c_size_t), intent(in) :: elements
        integer, intent(out) :: status
        type(c_ptr) :: raw

        status = ncclmemalloc(raw, elements * 4_c_size_t)
        call c_f_pointer(raw, area, [elements])
    end subroutine

    subroutine work_alloc_r8(area, elements, status)
        real(c_double), pointer, contiguous, intent(out) :: area(:)
        integer(c_size_t), intent(in) :: elements
        integer, intent(out) :: status
        type(c_ptr) :: raw

        status = ncclmemalloc(raw, elements * 8_c_size_t)
        call c_f_pointer(raw, area, [elements])
    end subroutine
end module

program workarea
    use vendor
    implicit none
    integer, parameter :: candidates = 4, grid(2, candidates) = reshape([1, 8, 2, 4, 4, 2, 8, 1], [2, candidates])
    integer :: round, c, status
    type(c_ptr) :: none

    do round = 1, 3
        do c = 1, candidates
            call trial(round, grid(1, c), grid(2, c))
        end do
        status = cudadevicesynchronize()
        call say_made("round" // c_null_char)
    end do
    ! What cannot be had is an error that a tuner goes on after.
    status = ncclmemalloc(none, 2_c_size_t**50)
    print '(a, i0)', "too large: ", status
    call trial(4, 2, 4)
    call say_made("after" // c_null_char)
contains
    ! Transposes an array through a work area, in blocks of the candidate's grid, and back.
    subroutine trial(round, rows, columns)
        integer, intent(in) :: round, rows, columns
        integer(c_size_t), parameter :: n = 512, m = 1024
        real(c_double), pointer, contiguous :: field(:), work(:)
        real(c_float), pointer, contiguous :: small(:)
        real(c_double), target :: host(n, m), back(n, m)
        integer :: bad, i
        integer(c_size_t) :: j, height, pitch

        bad = 0
        do j = 1, m
            host(:, j) = [(real(i, c_double) + real(j, c_double) * 1000 + round, i = 1, int(n))]
        end do
        call work_alloc(field, n * m, status)
        bad = bad + abs(status)
        call work_alloc(work, n * m + int(rows, c_size_t) * 4096, status)
        bad = bad + abs(status)
        call work_alloc(small, int(columns, c_size_t) * 100, status)
        bad = bad + abs(status)
        bad = bad + cudamemcpy(c_loc(field), c_loc(host), n * m * 8, host_to_device)
        ! Columns go over in as many parts as the grid has, last ones first.
        height = m / columns
        pitch = n * 8
        do i = columns - 1, 0, -1
            bad = bad + cudamemcpy2d(c_loc(work(1 + int(columns - 1 - i, c_size_t) * height * n)), pitch, &
                                     c_loc(field(1 + int(i, c_size_t) * height * n)), pitch, pitch, height, device_to_device)
        end do
        do i = columns - 1, 0, -1
            bad = bad + cudamemcpy2d(c_loc(field(1 + int(i, c_size_t) * height * n)), pitch, &
                                     c_loc(work(1 + int(columns - 1 - i, c_size_t) * height * n)), pitch, pitch, height, &
                                     device_to_device)
        end do
        bad = bad + cudamemcpy(c_loc(back), c_loc(field), n * m * 8, device_to_host)
        bad = bad + count(back /= host)
        bad = bad + ncclmemfree(c_loc(small)) + ncclmemfree(c_loc(work)) + ncclmemfree(c_loc(field))
        print '(a, i0, a, i0, a, i0, a, i0, a, f0.1)', "round ", round, " grid ", rows, "x", columns, ": ", bad, " sum ", sum(back)
    end subroutine
end program
