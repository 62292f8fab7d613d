# src/share: floor 2, what processes on one device tell each other
SHARE_SOURCES = src/share/page.h src/share/page_file.h src/share/page_file.c src/share/admission.h \
	src/share/admission.c src/share/asks.h src/share/asks.c src/share/member.h src/share/member.c
