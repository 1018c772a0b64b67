// Macros of <X11/Xlib.h>, <X11/Xutil.h> and <windows.h>, for a program that includes these headers before the
// library's.
#pragma once
#define None 0L
#define True 1
#define False 0
#define Bool int
#define Status int
#define Success 0
#define Always 2
#define Above 0
#define Below 1
#define Button1 1
#define Complex 0
#define Convex 2
#define CurrentTime 0L
#define KeyPress 2
#define FocusIn 9
#define GrayScale 1
#define Unsorted 0
#define Nonconvex 1
#define ControlMask 4
#define Expose 12
#define CursorShape 0
#define Mod1Mask 8
#define InputOutput 1
#define IsViewable 2
#define DestroyAll 0
#define WhenMapped 1
#define NotUseful 0
#define YXBanded 3
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
#define interface struct
#define ERROR 0
#define IN
#define OUT
#define OPTIONAL
#define DELETE 0x00010000L
#define CONST const
#define VOID void
#define TRUE 1
#define FALSE 0
#define DIFFERENCE 11
#define STRICT 1
#define PASCAL
#define ABSOLUTE 1
#define RELATIVE 2
#define NO_ERROR 0L
#define GetObject GetObjectW
#define GetMessage GetMessageW
#define CreateFile CreateFileW
#define Yield()
#define TileShape 1
#define emit
#define signals public
#define slots
#define foreach for
